"""What proxies counted over a while, as tables: pure, from pages of metrics to rows and text."""
