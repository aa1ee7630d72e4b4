"""What is drawn of a host; how it is drawn is the renderers' matter (`report.host`)."""
