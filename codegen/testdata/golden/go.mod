module mtcprogram/golden

go 1.26.0

require github.com/megatrain/mtc v0.0.0

replace github.com/megatrain/mtc => ../../..
