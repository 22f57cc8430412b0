"""What a penalty asks of pairs of coordinates, a file each: absolute values, groups of columns, known signs."""
