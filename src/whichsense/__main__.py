"""`python -m whichsense` is the command."""

from whichsense.cli import main

if __name__ == "__main__":
    main()
