LOADED = "an __init__ that nobody needs over there"
