// args: --model a
model a = b(D = 3)
model b = a(D = 3)
