"""What engines and GPUs tell of themselves: scraped by Prometheus, judged by rules that stand on
the plan's own objectives, and drawn by Grafana. Independent of the target."""
