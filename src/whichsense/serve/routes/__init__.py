"""The paths of the service, one file for each group."""
