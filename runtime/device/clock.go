package device

// Clock is a Device that can tell when its lanes come to a point in their work.
type Clock interface {
	// Marks makes room for points in time; point i will be set on lane lanes[i]. Everything
	// is allocated here, so that setting one allocates nothing. Times start about now.
	Marks(lanes []Lane) (Marks, error)
}

// Marks are points in time, each on a lane.
type Marks interface {
	// Set enqueues point i on its lane: the time at which all commands enqueued before it on
	// that lane are done.
	Set(i int)
	// Read gives the points in nanoseconds, -1 for those never set. Every lane's times have
	// the same origin. The caller has synced the device.
	Read() ([]int64, error)
	// Close gives the points back; the caller has synced the device.
	Close()
}
