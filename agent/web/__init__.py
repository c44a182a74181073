"""The web server of the service: connections, authentication, pages."""
