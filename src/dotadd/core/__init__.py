"""What every solver and every map is made of: blocks with DOT and ADD, and the losses."""
