"""The tasks that the loop trains, one file each."""
