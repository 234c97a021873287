//go:build goexperiment.simd && amd64 && !race

package vec

// Polynomials of the vector implementations, fitted by weighted least squares to the relative
// error named with each. They are evaluated by Horner's rule with fused operations.
const (
	log2e = 1.44269504088896341
	// ln 2 in two parts; products of the first with exponents are exact.
	ln2Hi = 0.693145751953125
	ln2Lo = 1.42860682030941723e-6
	// Adding and subtracting roundMagic = 1.5 * 2^23 rounds to an integer.
	roundMagic = 12582912

	// e^r = 1 + r + r^2 (exp0 + exp1 r + ...) for |r| <= ln(2)/2, 3e-9.
	exp0 = 0.4999999403953552
	exp1 = 0.1666652113199234
	exp2 = 0.04166839271783829
	exp3 = 0.00836874544620514
	exp4 = 0.001381453825160861
	// Above maxExp e^x is +Inf, below minExp 0.
	maxExp = 88.72283935546875

	// tanh x = x + x u (tanh0 + tanh1 u + ...), u = x^2, for |x| <= 0.65, 7e-9.
	tanh0     = -0.3333325982093811
	tanh1     = 0.1333083063364029
	tanh2     = -0.05368804186582565
	tanh3     = 0.020469481125473976
	tanh4     = -0.005515228025615215
	tanhSmall = 0.625

	// erfc z = e^(-z^2) t (erfc0 + erfc1 t + ...), t = 1/(1 + erfcT z), for 0 <= z <= 14, 3e-9.
	erfcT  = 0.4
	erfc0  = 0.2256789207458496
	erfc1  = 0.2255931794643402
	erfc2  = 0.20855331420898438
	erfc3  = 0.16576403379440308
	erfc4  = 0.14261886477470398
	erfc5  = 0.023123856633901596
	erfc6  = 0.056820303201675415
	erfc7  = 0.02132042683660984
	erfc8  = -0.15330196917057037
	erfc9  = 0.10717914253473282
	erfc10 = -0.02335008792579174

	invSqrt2   = 0.70710678118654752
	invSqrt2Pi = 0.39894228040143268
	// 2 sqrt(2/pi), and that times the cubic term of the tanh form of GELU.
	geluTwice      = 2 * geluScale
	geluTwiceCubic = 2 * geluScale * geluCubic
)
