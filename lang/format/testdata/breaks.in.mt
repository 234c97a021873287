use   "a.mt" ;  use "b.mt" // two
model breaks(D = 64, heads = 4, head_dim = D / heads, feed_forward = 4 * D, vocabulary = 50257, context_length = 1024, epsilon = 1e-5, theta = 10000.0) { init normal( 0.02 )
  block layer(x, window = none) {
    a = attention(rope(q: linear(x, heads * head_dim, bias), head_dim, theta), rope(k: linear(x, heads * head_dim, bias), head_dim, theta), v: linear(x, heads * head_dim, bias), heads = heads, causal, window = window)
    a = attention(q, k, v,
      heads = heads,
      causal)
    y = (a +
        b) * 3
    y = (
      a
    )
    y = (aaaaaaaaaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb * ccccccccccccccccccccccccccccc - ddddddddddddddddddddddddd + eeeeeeeeeee)
    z = - - - a % - 2 <= 3 and not not (b or not(c))
    if a==b   { } else if (c)    { y = 1 } else { y = 2 }
    if a { if b { y = 1 } }
    y = "äöü日本" ; y = f("a // not a comment", "\"\\\n\t")
  } ; block one(x) { return x }
  preset small { D=1 } // s
  preset larger { D=2, heads =3 } // l

  preset multi { D=2, heads =3
    context_length=4, }
  forward(tokens) {}
}
// before the instance
model inst=breaks(D=3)
model plain { }
