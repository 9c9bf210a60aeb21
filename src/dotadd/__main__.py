"""`python -m dotadd` is the command `dotadd`."""

from dotadd.cli import main

if __name__ == "__main__":
    main()
