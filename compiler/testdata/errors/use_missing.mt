use "llamma.mt"
use ""
use "use_circle_b.mt"
use "use_circle_b.mt"
model m = llama(D = 3)
