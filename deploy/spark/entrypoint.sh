#!/bin/bash
# The entry point of the Spark image in Kubernetes: Spark asks for a `driver` or an `executor` and passes the rest in variables
# of its own. Anything else is a command, as in compose.
set -euo pipefail

case "${1:-}" in
driver)
  shift
  exec /opt/packages/pyspark/bin/spark-submit --conf "spark.driver.bindAddress=${SPARK_DRIVER_BIND_ADDRESS}" \
    --conf "spark.executorEnv.SPARK_DRIVER_POD_IP=${SPARK_DRIVER_BIND_ADDRESS}" --deploy-mode client "$@"
  ;;
executor)
  # Each option of the JVM is a variable of its own: SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, …
  options=()
  for ((i = 0; ; i++)); do
    name="SPARK_JAVA_OPT_${i}"
    [[ -v "${name}" ]] || break
    options+=("${!name}")
  done
  exec java "${options[@]}" "-Xms${SPARK_EXECUTOR_MEMORY}" "-Xmx${SPARK_EXECUTOR_MEMORY}" \
    -cp "${SPARK_CLASSPATH:-}:/opt/packages/pyspark/jars/*:/opt/jars/spark/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "${SPARK_DRIVER_URL}" --executor-id "${SPARK_EXECUTOR_ID}" --cores "${SPARK_EXECUTOR_CORES}" \
    --app-id "${SPARK_APPLICATION_ID}" --hostname "${SPARK_EXECUTOR_POD_IP}" \
    --resourceProfileId "${SPARK_RESOURCE_PROFILE_ID:-0}" --podName "${SPARK_EXECUTOR_POD_NAME}"
  ;;
*)
  exec "$@"
  ;;
esac
