"""From a request to its outcome: the calls to an API, by the policy that the application declares for it."""
