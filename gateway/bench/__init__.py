"""The load tool, `audio8-gateway bench`: listeners that measure what they hear."""
