"""What a solver is given: phi over rows, signs and costs, one objective."""
