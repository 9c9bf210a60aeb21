"""What has nothing to do with support vector machines."""
