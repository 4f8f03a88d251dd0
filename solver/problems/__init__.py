"""Problems as people meet them: what may be asked, and how plans are shown."""
