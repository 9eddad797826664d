"""What wire formats are made of: framing, fields, blocks, and how a reply is read."""
