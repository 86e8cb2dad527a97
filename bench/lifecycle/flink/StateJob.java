import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.*;
import org.apache.flink.api.common.typeinfo.*;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.*;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import static java.nio.charset.StandardCharsets.UTF_8;

/**
 * The state of each device, a snapshot for each event. args: bootstrap, group id, checkpoint dir, parallelism, savepoint to start from or `-`.
 * Reads commands, a line each: `savepoint DIR` while it runs on, `stop DIR` with a savepoint. Answers `DONE` and its path, or `FAILED`.
 */
public class StateJob {
  static final TypeInformation<byte[]> BYTES = PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;

  static final class De implements KafkaRecordDeserializationSchema<Tuple2<String, Double>> {
    transient Rec r;
    @Override public void deserialize(ConsumerRecord<byte[], byte[]> c, Collector<Tuple2<String, Double>> out) {
      if (r == null) r = new Rec();
      if (r.parse(c.value(), true, c.timestamp())) out.collect(Tuple2.of(r.device, r.temp));
    }
    @Override public TypeInformation<Tuple2<String, Double>> getProducedType() { return Types.TUPLE(Types.STRING, Types.DOUBLE); }
  }

  static final class Fold extends KeyedProcessFunction<String, Tuple2<String, Double>, Tuple2<byte[], byte[]>> {
    transient ValueState<Device> state;
    @Override public void open(OpenContext c) { state = getRuntimeContext().getState(new ValueStateDescriptor<>("device", Types.POJO(Device.class))); }
    @Override public void processElement(Tuple2<String, Double> e, Context c, Collector<Tuple2<byte[], byte[]>> out) throws Exception {
      Device device = state.value();
      if (device == null) device = new Device();
      device.add(e.f1);
      state.update(device);
      out.collect(Tuple2.of(e.f0.getBytes(UTF_8), ("{\"device_id\":\"" + e.f0 + "\",\"state\":" + device.json() + "}").getBytes(UTF_8)));
    }
  }

  static final class Ser implements KafkaRecordSerializationSchema<Tuple2<byte[], byte[]>> {
    @Override public ProducerRecord<byte[], byte[]> serialize(Tuple2<byte[], byte[]> e, KafkaSinkContext c, Long ts) { return new ProducerRecord<>("snapshots", e.f0, e.f1); }
  }

  public static void main(String[] x) throws Exception {
    Configuration c = new Configuration();
    c.setString("state.backend.type", "rocksdb");
    c.setString("execution.checkpointing.incremental", "true");
    c.setString("execution.checkpointing.interval", "5s");
    c.setString("execution.checkpointing.mode", "AT_LEAST_ONCE");
    c.setString("execution.checkpointing.dir", "file://" + x[2]);
    c.setString("execution.buffer-timeout.interval", "1ms");
    c.setString("restart-strategy.type", "disable");
    c.setString("taskmanager.numberOfTaskSlots", x[3]);
    c.setString("taskmanager.memory.managed.size", "512mb");
    if (!x[4].equals("-")) c.setString("execution.state-recovery.path", x[4]);
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(Integer.parseInt(x[3]), c);
    KafkaSource<Tuple2<String, Double>> source = KafkaSource.<Tuple2<String, Double>>builder().setBootstrapServers(x[0]).setGroupId(x[1]).setTopics("events")
        .setStartingOffsets(OffsetsInitializer.earliest()).setDeserializer(new De()).build();
    env.fromSource(source, WatermarkStrategy.noWatermarks(), "events").uid("events").keyBy(e -> e.f0, Types.STRING)
        .process(new Fold(), Types.TUPLE(BYTES, BYTES)).uid("device-state")
        .sinkTo(KafkaSink.<Tuple2<byte[], byte[]>>builder().setBootstrapServers(x[0]).setDeliveryGuarantee(DeliveryGuarantee.AT_LEAST_ONCE)
            .setRecordSerializer(new Ser()).setProperty("linger.ms", "1").build()).uid("snapshots");
    JobClient job = env.executeAsync("device-state");
    System.out.println("STARTED");
    new Thread(() -> end(job)).start();
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    for (String line; (line = commands.readLine()) != null; ) {
      String[] said = line.split(" ");
      try {
        String path = said[0].equals("stop") ? job.stopWithSavepoint(false, said[1], SavepointFormatType.CANONICAL).get()
            : job.triggerSavepoint(said[1], SavepointFormatType.CANONICAL).get();
        System.out.println("DONE " + path);
        if (said[0].equals("stop")) System.exit(0);
      } catch (Exception e) { System.out.println("FAILED " + e); }
    }
  }

  static void end(JobClient job) {
    try { job.getJobExecutionResult().get(); } catch (Exception e) {
      Throwable cause = e;
      while (cause.getCause() != null) cause = cause.getCause();
      System.out.println("ENDED " + cause);
      System.exit(1);
    }
  }
}
