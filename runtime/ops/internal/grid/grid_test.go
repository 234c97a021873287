package grid

import "testing"

// TestTeam: a team holds the whole row, in blocks that a GPU can have.
func TestTeam(t *testing.T) {
	for n := int64(1); n < 100000; n++ {
		lanes, units := Team(n)
		switch {
		case lanes < 1 || lanes > 1024 || lanes > 32 && lanes%32 != 0 || lanes <= 32 && 32%lanes != 0:
			t.Fatalf("a row of %d: %d lanes", n, lanes)
		case units > 0 && (n%8 != 0 || lanes*units*8 < n || units > maxUnits):
			t.Fatalf("a row of %d: %d lanes of %d units", n, lanes, units)
		case units == 0 && n%8 == 0 && n <= 1<<16:
			t.Fatalf("a row of %d is not held", n)
		}
	}
	for _, c := range [][3]int64{{64, 8, 1}, {128, 16, 1}, {768, 32, 3}, {1024, 32, 4}, {3584, 224, 2}, {4096, 256, 2}, {8192, 512, 2}, {18944, 320, 8}, {100, 32, 0}, {65536, 1024, 8}} {
		if lanes, units := Team(c[0]); lanes != c[1] || units != c[2] {
			t.Errorf("a row of %d: %d lanes of %d units, want %v", c[0], lanes, units, c[1:])
		}
	}
}

// TestForwardTeam: heads have two units a lane; others are held as backward holds them.
func TestForwardTeam(t *testing.T) {
	for _, c := range [][3]int64{{8, 1, 1}, {64, 4, 2}, {128, 8, 2}, {768, 32, 3}, {2048, 64, 4}, {3584, 128, 4}, {4096, 128, 4}, {8192, 256, 4}, {16384, 512, 4}, {32768, 512, 8}, {65536, 1024, 8}, {1001, 32, 0}} {
		if lanes, units := ForwardTeam(c[0]); lanes != c[1] || units != c[2] {
			t.Errorf("a row of %d: %d lanes of %d units, want %v", c[0], lanes, units, c[1:])
		}
	}
}

// TestColumns: the scratch memory holds what the blocks write, and no chunk is without rows at
// sizes where the GPU is full.
func TestColumns(t *testing.T) {
	for _, rows := range []int64{1, 31, 32, 33, 1000, 8192, 1 << 20} {
		for _, d := range []int64{1, 8, 255, 256, 257, 3584, 152064, 1 << 20} {
			g := Columns(rows, d)
			if int64(g.X)*columnTile < d || 4*int64(g.Y)*d != ColumnWork(rows, d) || g.Y > 65535 {
				t.Errorf("%d rows of %d: %+v, %d bytes", rows, d, g, ColumnWork(rows, d))
			}
		}
	}
}

// TestTall: there are as many blocks as asked for, in a grid that a GPU takes.
func TestTall(t *testing.T) {
	for _, y := range []int64{1, 2, MaxY, MaxY + 1, 2*MaxY + 1, 1 << 25} {
		g := Tall(3, y, 256)
		if g.X != 3 || g.Y < 1 || g.Y > MaxY || g.Z < 1 || g.Z > MaxY || int64(g.Y)*int64(g.Z) < y || int64(g.Y)*int64(g.Z-1) >= y {
			t.Errorf("%d blocks: %+v", y, g)
		}
	}
}
