"""Recording a machine, without what identifies it or its owner."""
