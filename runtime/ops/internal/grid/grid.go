// Package grid gives the shapes of the launches of the ops' CUDA kernels. It mirrors the
// constants of runtime/device/cuda/kit/loops.cuh, where the loops themselves stand.
package grid

import "github.com/megatrain/mtc/runtime/device"

const (
	mapThreads  = 256
	mapTile     = mapThreads * 8 // elements
	mapTiles    = 2              // of a block
	teamThreads = 256
	columnTile  = 256
	columnBlock = 256 // threads
)

// MaxY is how many blocks a grid may have in its second and its third direction.
const MaxY = 1<<16 - 1

// Of is a launch of x blocks of a number of threads.
func Of(x, threads int64) device.Grid {
	return device.Grid{X: int32(x), Y: 1, Z: 1, Threads: int32(threads)}
}

// Tall is a launch of x by y blocks, those of y in layers of a third direction where there are too many
// for the second: block y is number blockIdx.z * gridDim.y + blockIdx.y, and some have none.
func Tall(x, y, threads int64) device.Grid {
	z := max(1, ceil(y, MaxY))
	return device.Grid{X: int32(x), Y: int32(ceil(y, z)), Z: int32(z), Threads: int32(threads)}
}

// Elements is the launch of loops.cuh's map with two tiles a block, over n elements.
func Elements(n int64) device.Grid { return Of(max(1, ceil(n, mapTiles*mapTile)), mapThreads) }

// Map is Elements of the rows I[0] of I[1] elements, as most kernels have them.
func Map(a *device.Args) device.Grid { return Elements(a.I[0] * a.I[1]) }

// The lanes of a team and the units of 8 elements that one lane holds.
const (
	maxBlock     = 512 // lanes of a team that is a block
	wantedLanes  = 256
	maxUnits     = 8
	smallUnits   = 4 // a warp holds a row of up to 32 * 4 units
	loneElements = 1024
)

// Team returns how a row of n elements is held: lanes (loops.cuh's LANES) and units for each
// (UNITS); no units say that the row is read from memory each time.
func Team(n int64) (lanes, units int64) {
	if n%8 != 0 || n > maxBlock*2*maxUnits*8 {
		if n <= loneElements {
			return 32, 0
		}
		return wantedLanes, 0
	}
	u := n / 8
	if u <= 32*smallUnits {
		lanes = 1
		for lanes < 32 && lanes < u {
			lanes *= 2
		}
		return lanes, ceil(u, lanes)
	}
	// Two units a lane keep enough reads in flight; long rows get more lanes, then more units.
	units = 2
	limit := int64(wantedLanes)
	for ceil(u, units) > limit {
		if limit < maxBlock || units == maxUnits {
			limit *= 2
		} else {
			units *= 2
		}
	}
	return ceil(ceil(u, units), 32) * 32, units
}

// ForwardTeam is Team where a row of one tensor is held: with more units a lane fewer wait for each
// other, and what a lane has besides is held less often, so that more rows are read at once.
func ForwardTeam(n int64) (lanes, units int64) {
	lanes, units = Team(n)
	if u := n / 8; units > 0 && lanes > 32 && u <= maxBlock*smallUnits {
		lanes = ceil(ceil(u, smallUnits), 32) * 32
		return lanes, ceil(u, lanes)
	}
	if units == 1 && lanes > 4 { // a head: two units a lane, for more reads in flight
		return lanes / 2, 2
	}
	return lanes, units
}

// SweepTeam is Team where one sum is kept for each column: with one unit a lane there are registers to
// read the next row in.
func SweepTeam(n int64) (lanes, units int64) {
	lanes, units = Team(n)
	if u := n / 8; units == 2 && lanes > 32 && u <= maxBlock {
		return ceil(u, 32) * 32, 1
	}
	return lanes, units
}

// Rows is the launch of a team for each of n rows.
func Rows(n, lanes int64) device.Grid {
	if lanes > 32 {
		return Of(max(n, 1), lanes)
	}
	return Of(max(1, ceil(n, teamThreads/lanes)), teamThreads)
}

// Aligned tells whether addresses are multiples of 16 bytes; arenas begin at such.
func Aligned(ptrs ...device.Ptr) bool {
	var all int64
	for _, p := range ptrs {
		all |= p.Off
	}
	return all%16 == 0
}

// Sweeps tells whether teams may go over many rows and keep sums over them: loops.cuh's sweeps.
func Sweeps(lanes, units int64) bool { return units > 0 && units <= 4 && lanes <= 512 }

// sweepBlocks is loops.cuh's sweep_blocks.
func sweepBlocks(n, lanes, units, sums int64) int64 {
	share := int64(1)
	switch {
	case lanes <= 32 && units == 1:
		share = 3
	case lanes <= 32 && units <= 3:
		share = 2
	case lanes > 32 && lanes <= 256 && units <= 2 && sums == 1:
		share = 4
	case lanes > 32 && lanes <= 256 && units <= 2, lanes > 32 && units == 1:
		share = 2
	}
	if lanes <= 32 {
		n = ceil(n, teamThreads/lanes)
	}
	return min(n, 132*share)
}

// Sweep is the launch of teams over n rows that keep sums for each column.
func Sweep(n, lanes, units, sums int64) device.Grid {
	return Of(max(1, sweepBlocks(n, lanes, units, sums)), sweepThreads(lanes))
}

func sweepThreads(lanes int64) int64 {
	if lanes <= 32 {
		return teamThreads
	}
	return lanes
}

// SweepWork is the scratch memory of the sums over width columns.
func SweepWork(n, lanes, units, sums, width int64) int64 {
	return 4 * max(1, sweepBlocks(n, lanes, units, sums)) * sums * width
}

// columnChunks is loops.cuh's column_chunks.
func columnChunks(rows, d int64) int64 {
	tiles := ceil(d, columnTile)
	return max(1, min(132*(1536/columnBlock)/tiles, ceil(rows, 4*columnBlock/32)))
}

// Columns is the first launch of a column sum.
func Columns(rows, d int64) device.Grid {
	return device.Grid{X: int32(ceil(d, columnTile)), Y: int32(columnChunks(rows, d)), Z: 1, Threads: columnBlock}
}

// ColumnWork is the scratch memory of a column sum.
func ColumnWork(rows, d int64) int64 { return 4 * columnChunks(rows, d) * d }

// ColumnsEnd is the second launch, for per columns.
func ColumnsEnd(per int64) device.Grid { return Of(ceil(per, 32), 1024) }

// Items is the launch of a number of threads' worth of work for each row: blocks of one or
// more rows, whose number it returns too.
func Items(rows, items int64) (g device.Grid, perBlock int64) {
	perBlock = max(1, 256/items)
	threads := min(256, ceil(perBlock*items, 32)*32)
	return Of(max(1, ceil(rows, perBlock)), threads), perBlock
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
