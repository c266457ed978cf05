"""Would have caught: real faults of public releases as data, and a check that knows nothing of them."""
