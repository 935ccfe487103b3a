"""The compiled run: specializations for one signature of feeds, segments of calls, their memory."""
