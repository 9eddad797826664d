"""What wire formats are made of: framing, fields, blocks, errors, and how a reply is read."""
