module mtcprogram/golden

go 1.26.0

require github.com/megatrain/mtc v0.0.0

require (
	github.com/klauspost/compress v1.20.4 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)

replace github.com/megatrain/mtc => ../../..
