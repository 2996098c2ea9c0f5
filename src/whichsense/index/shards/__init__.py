"""An index in shards: how passages are spread over them, and how what they find is ranked as one."""
