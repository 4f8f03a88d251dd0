"""What one does with plans; nothing below imports it."""
