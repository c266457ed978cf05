"""The figures in the seeds, met on simulated devices of those cards' sizes."""
