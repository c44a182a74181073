"""Recording a machine without data that identifies it or its owner."""
