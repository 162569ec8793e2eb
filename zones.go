package main

import _ "time/tzdata" // schedules must know every zone on machines that have no tz database
