"""What a cluster needs installed beside the workloads: charts, and the objects that they act on."""
