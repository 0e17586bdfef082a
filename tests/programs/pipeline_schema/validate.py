"""Says of each JSON document, one a line of stdin, whether a schema accepts it: validate.py SCHEMA."""
import json
import sys

from jsonschema.validators import validator_for

with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
validator = validator_for(schema)(schema)
for line in sys.stdin:
    print(json.dumps(validator.is_valid(json.loads(line))))
