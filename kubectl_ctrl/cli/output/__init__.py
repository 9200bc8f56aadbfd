"""What a verb writes to its streams: answers, progress, log lines, redrawn terminal lines."""
