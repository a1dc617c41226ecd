// Package catalogue owns what is known of checkpoints before a call: a JSON file
// per flavor with the imports' load times, the checkpoints that were made of
// them, and what the flavor's image carries. From it follows which start is the
// cheapest for a set of imports.
//
//	{
//	  "version": 1,
//	  "flavor": "cpu",
//	  "alpha": 0.006,                     seconds per MB of checkpoint
//	  "items": {
//	    "numpy":  {"load_time": 0.2, "size_mb": 30},
//	    "pandas": {"load_time": 0.5, "size_mb": 60, "dependencies": ["numpy"]}
//	  },
//	  "checkpoints": [
//	    {"id": "np", "items": ["numpy"], "size_mb": 7, "canonical": true}
//	  ],
//	  "packages": {"numpy": "1.26.4"}     what the base image carries; optional
//	}
//
// The needed set R is the transitive closure of the call's imports, names that no
// item has left out. A cold start costs the load times of R; a start from a
// checkpoint costs alpha times its size and the load times of what is in R and
// not in it. The least cost wins; of equal ones the later in the file, a cold
// start standing before the first.
package catalogue
