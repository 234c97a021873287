train { seq = 4; batch = 1 rows }
