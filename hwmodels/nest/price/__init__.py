"""What a nest costs in closed form: pieces, tables, bounds, causes."""
