"""How accurate a map is: samples of it, and what they tell."""
