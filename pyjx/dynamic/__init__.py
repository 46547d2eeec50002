"""One program for arrays of many sizes: functions traced with symbolic sizes, and run padded."""
