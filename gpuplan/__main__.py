from gpuplan.cli.main import main

raise SystemExit(main())
