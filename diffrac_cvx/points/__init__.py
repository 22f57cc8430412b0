"""What a table is, however it is stored: checked, centred, its sums, and what rounding may change of them."""
