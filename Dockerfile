# The project's service: the command line, with a memory on the server that docker-compose.yml starts.
ARG BASE=python:3.12-slim
FROM ${BASE}
WORKDIR /app
COPY requirements/runtime.txt requirements/
RUN python3 -m venv /venv && /venv/bin/pip install --no-cache-dir --require-hashes -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY contextgraph contextgraph
COPY cypher cypher
RUN /venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation .
USER 1000
ENV PATH=/venv/bin:$PATH HOME=/tmp
WORKDIR /runs
ENTRYPOINT ["contextgraph"]
CMD ["doctor"]
