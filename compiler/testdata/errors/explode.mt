model m(D = 64, V = 256) {
  init normal(0.02)
  block b0(x) { x = silu(x) }
  block b1(x) { b0(x); b0(x) }
  block b2(x) { b1(x); b1(x) }
  block b3(x) { b2(x); b2(x) }
  block b4(x) { b3(x); b3(x) }
  block b5(x) { b4(x); b4(x) }
  block b6(x) { b5(x); b5(x) }
  block b7(x) { b6(x); b6(x) }
  block b8(x) { b7(x); b7(x) }
  block b9(x) { b8(x); b8(x) }
  block b10(x) { b9(x); b9(x) }
  block b11(x) { b10(x); b10(x) }
  block b12(x) { b11(x); b11(x) }
  block b13(x) { b12(x); b12(x) }
  block b14(x) { b13(x); b13(x) }
  block b15(x) { b14(x); b14(x) }
  block b16(x) { b15(x); b15(x) }
  block b17(x) { b16(x); b16(x) }
  block b18(x) { b17(x); b17(x) }
  block b19(x) { b18(x); b18(x) }
  block b20(x) { b19(x); b19(x) }
  block b21(x) { b20(x); b20(x) }
  block b22(x) { b21(x); b21(x) }
  block b23(x) { b22(x); b22(x) }
  block b24(x) { b23(x); b23(x) }
  block b25(x) { b24(x); b24(x) }
  block b26(x) { b25(x); b25(x) }
  block b27(x) { b26(x); b26(x) }
  block b28(x) { b27(x); b27(x) }
  block b29(x) { b28(x); b28(x) }
  block b30(x) { b29(x); b29(x) }
  block b31(x) { b30(x); b30(x) }
  block b32(x) { b31(x); b31(x) }
  block b33(x) { b32(x); b32(x) }
  block b34(x) { b33(x); b33(x) }
  block b35(x) { b34(x); b34(x) }
  block b36(x) { b35(x); b35(x) }
  block b37(x) { b36(x); b36(x) }
  block b38(x) { b37(x); b37(x) }
  block b39(x) { b38(x); b38(x) }
  block b40(x) { b39(x); b39(x) }
  block b41(x) { b40(x); b40(x) }
  block b42(x) { b41(x); b41(x) }
  block b43(x) { b42(x); b42(x) }
  block b44(x) { b43(x); b43(x) }
  block b45(x) { b44(x); b44(x) }
  block b46(x) { b45(x); b45(x) }
  block b47(x) { b46(x); b46(x) }
  block b48(x) { b47(x); b47(x) }
  block b49(x) { b48(x); b48(x) }
  block b50(x) { b49(x); b49(x) }
  block b51(x) { b50(x); b50(x) }
  block b52(x) { b51(x); b51(x) }
  block b53(x) { b52(x); b52(x) }
  block b54(x) { b53(x); b53(x) }
  block b55(x) { b54(x); b54(x) }
  block b56(x) { b55(x); b55(x) }
  block b57(x) { b56(x); b56(x) }
  block b58(x) { b57(x); b57(x) }
  block b59(x) { b58(x); b58(x) }
  forward(tokens) {
    x = wte: embed(tokens, V, D)
    b59(x)
    return head: linear(x, V)
  }
}
