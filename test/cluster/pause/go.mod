module oarlock.dev/pause

go 1.26
