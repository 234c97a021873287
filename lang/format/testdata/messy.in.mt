

// top


model   m( D=3,E , // why
   F  = 4,
   )   {   // start


 // one
   block b(x){y=a+b;z = -  3 * not_a   // tail
   if D==3 and not E{y=1}else{ z=2 } // both
   if D { y = 1 } else if E { z = 2; q = 3 } else { // last
     z = f( // first
        a,
        // own
        b, // second
        // before close
     )
   }

   }  // end b
  preset a{D=1}
  preset bbb   { D=1,E=2, }
  preset big {
    D = 4,
    Long = 5

    // c
    E = 3 }
  weights hf { a="x"
   layer[ i ].q,b = split( "x" )
   bcdef = "y" // c1
   q = "long" // c2
   if D { a = "z" } else { }
  }
  forward ( tokens ) {
     x = wte: embed(tokens, V, D, init = normal(1.0)) + moe(rmsnorm(x, weight = false), experts = E, expert = mlp(width = 2 * D), shared = mlp(width = 2 * D), router = threshold(rate = rate))
  repeat L  as i{layer:dense(x,window=if i%2==0 then 4096 else none)}
    return (a+b)*-c }
}
train{batch=3   tokens;seq=4 // n
 data="x"}
// end
train { seq=16
lora( rank=8,alpha =16,targets=[ q,"attn.*" ,v,])
   steps   = 3 }
