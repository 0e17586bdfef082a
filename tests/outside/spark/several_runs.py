"""An application that runs the job of deploy/spark several times: with damaged captures, without sorting, and with a
Python without modules. Prints a line of JSON for each run that fails, with the reason."""

import json
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])

import job  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql.classic.dataframe import DataFrame  # noqa: E402


def main():
    bare_python, folder, *options = sys.argv[2:]
    folder = Path(folder)
    spark = SparkSession.builder.getOrCreate()

    def run(case, captures, out, *more):
        try:
            job.run(spark, job.arguments([str(folder / captures), "-o", str(folder / out), *options, *more]))
        except job.Fault as fault:
            print(json.dumps({case: {"fault": str(fault), "wrote": (folder / out).exists()}}), flush=True)

    run("damaged", "damaged/cut", "none")
    run("wrong option", "homes", "none", "--set", "pruner.kep=1")
    run("quarantined", "damaged", "quarantined", "--on-error", "quarantine")
    # As an engine does that runs the same job, and leaves out what it does not know.
    DataFrame.sortWithinPartitions = lambda frame, *_columns, **_options: frame
    run("unsorted", "homes", "none")
    spark.sparkContext.pythonExec = bare_python
    run("without modules", "homes", "none")
    left = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    print(json.dumps({"left": left}), flush=True)
    spark.stop()


main()
