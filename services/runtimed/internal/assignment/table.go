package assignment

var (
	clean    = []Effect{Clean}
	withdraw = []Effect{Withdraw, Clean}
)

// table is every transition; the first row that matches counts.
var table = []row{
	{from: New, on: Start, to: Preparing, effects: []Effect{ReportStarted, Prepare}},

	{from: Preparing, on: Prepared, mode: Function, to: Registering, effects: []Effect{Register}},
	{from: Preparing, on: Prepared, mode: Task, to: Executing, effects: []Effect{Execute}},
	{from: Preparing, on: Fail, to: Releasing, effects: clean},
	{from: Preparing, on: Release, to: Releasing, effects: clean},
	{from: Preparing, on: Refused, to: Releasing, effects: clean},
	{from: Preparing, on: Fence, to: Releasing, effects: clean},

	{from: Registering, on: Registered, to: Ready, effects: []Effect{Publish, ReportReady}},
	{from: Registering, on: Fail, to: Releasing, effects: clean},
	{from: Registering, on: Release, to: Releasing, effects: clean},
	{from: Registering, on: Refused, to: Releasing, effects: clean},
	{from: Registering, on: Fence, to: Releasing, effects: clean},

	{from: Ready, on: Fail, to: Releasing, effects: withdraw},
	{from: Ready, on: Release, to: Releasing, effects: withdraw},
	{from: Ready, on: Refused, to: Releasing, effects: withdraw},
	{from: Ready, on: Fence, to: Releasing, effects: withdraw},

	{from: Executing, on: Ended, to: Reporting, effects: []Effect{ReportFinished}},
	{from: Executing, on: Fail, to: Releasing, effects: clean},
	{from: Executing, on: Release, to: Releasing, effects: clean},
	{from: Executing, on: Refused, to: Releasing, effects: clean},
	{from: Executing, on: Fence, to: Releasing, effects: clean},

	// The work is being undone; causes that come now may change what is reported.
	{from: Releasing, on: Fail, to: Releasing},
	{from: Releasing, on: Release, to: Releasing},
	{from: Releasing, on: Refused, to: Releasing},
	{from: Releasing, on: Fence, to: Releasing},
	{from: Releasing, on: Cleaned, outcome: Failed, to: Reporting, effects: []Effect{ReportFailed}},
	{from: Releasing, on: Cleaned, outcome: Released, to: Reporting, effects: []Effect{ReportReleased}},
	{from: Releasing, on: Cleaned, outcome: Abandoned, to: Gone},

	// A task's result was heard, or nobody wants to hear it.
	{from: Reporting, on: Reported, outcome: Finished, to: Forgetting, effects: clean},
	{from: Reporting, on: Refused, outcome: Finished, to: Forgetting, effects: clean},
	{from: Reporting, on: Fence, outcome: Finished, to: Forgetting, effects: clean},
	{from: Reporting, on: Release, outcome: Finished, to: Reporting},
	{from: Reporting, on: Reported, to: Gone},
	// It is over, and how it ended does not depend on who has heard of it.
	{from: Reporting, on: Refused, to: Gone, keeps: true},
	{from: Reporting, on: Fence, to: Gone, keeps: true},
	// The failure may have been reported already: say both, the second is refused.
	{from: Reporting, on: Release, outcome: Failed, to: Reporting, effects: []Effect{ReportReleased}},
	{from: Reporting, on: Release, to: Reporting},
	{from: Reporting, on: Fail, to: Reporting},

	{from: Forgetting, on: Cleaned, to: Gone},
	{from: Forgetting, on: Release, to: Forgetting},
	{from: Forgetting, on: Refused, to: Forgetting},
	{from: Forgetting, on: Fence, to: Forgetting},
	{from: Forgetting, on: Fail, to: Forgetting},
}
