import java.io.IOException;
import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.*;
import org.apache.flink.api.java.tuple.*;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.*;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.datastream.*;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.triggers.CountTrigger;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import static java.nio.charset.StandardCharsets.UTF_8;

/** Events of each key in each hour. args: bootstrap, group id, checkpoint dir, prefix of topics, `close` (a count when its window ends) or `event` (one for each event). */
public class CountJob {
  static final Duration SIZE = Duration.ofHours(1), BEHIND = Duration.ofMinutes(1);
  static final TypeInformation<Tuple2<String, Long>> EVENT = Types.TUPLE(Types.STRING, Types.LONG);
  static final TypeInformation<Tuple3<String, Long, Long>> COUNT = Types.TUPLE(Types.STRING, Types.LONG, Types.LONG);

  static final class De implements KafkaRecordDeserializationSchema<Tuple2<String, Long>> {
    transient View v;
    @Override public void deserialize(ConsumerRecord<byte[], byte[]> c, Collector<Tuple2<String, Long>> out) {
      if (v == null) v = new View();
      if (v.parse(c.value())) out.collect(Tuple2.of(v.key, v.ts));
    }
    @Override public TypeInformation<Tuple2<String, Long>> getProducedType() { return EVENT; }
  }

  static final class Count implements AggregateFunction<Tuple2<String, Long>, Long, Long> {
    @Override public Long createAccumulator() { return 0L; }
    @Override public Long add(Tuple2<String, Long> e, Long n) { return n + 1; }
    @Override public Long getResult(Long n) { return n; }
    @Override public Long merge(Long a, Long b) { return a + b; }
  }

  static final class Start extends ProcessWindowFunction<Long, Tuple3<String, Long, Long>, String, TimeWindow> {
    @Override public void process(String key, Context c, Iterable<Long> counts, Collector<Tuple3<String, Long, Long>> out) {
      out.collect(Tuple3.of(key, c.window().getStart(), counts.iterator().next()));
    }
  }

  static final class Ser implements KafkaRecordSerializationSchema<Tuple3<String, Long, Long>> {
    final String topic; transient View v;
    Ser(String topic) { this.topic = topic; }
    @Override public ProducerRecord<byte[], byte[]> serialize(Tuple3<String, Long, Long> e, KafkaSinkContext c, Long ts) {
      if (v == null) v = new View();
      try { return new ProducerRecord<>(topic, e.f0.getBytes(UTF_8), v.count(e.f0, e.f1, e.f2)); } catch (IOException x) { throw new RuntimeException(x); }
    }
  }

  public static void main(String[] x) throws Exception {
    Configuration c = new Configuration();
    c.setString("state.backend.type", "rocksdb");
    c.setString("execution.checkpointing.incremental", "true");
    c.setString("execution.checkpointing.interval", "5s");
    c.setString("execution.checkpointing.mode", "AT_LEAST_ONCE");
    c.setString("execution.checkpointing.dir", "file://" + x[2]);
    c.setString("execution.buffer-timeout.interval", "1ms");
    c.setString("pipeline.object-reuse", "true");
    c.setString("taskmanager.numberOfTaskSlots", "2");
    c.setString("taskmanager.memory.managed.size", "512mb");
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(2, c);
    KafkaSource<Tuple2<String, Long>> source = KafkaSource.<Tuple2<String, Long>>builder().setBootstrapServers(x[0]).setGroupId(x[1]).setTopics(x[3] + View.IN)
        .setStartingOffsets(OffsetsInitializer.earliest()).setDeserializer(new De()).build();
    WatermarkStrategy<Tuple2<String, Long>> times = WatermarkStrategy.<Tuple2<String, Long>>forBoundedOutOfOrderness(BEHIND).withTimestampAssigner((e, t) -> e.f1);
    WindowedStream<Tuple2<String, Long>, String, TimeWindow> hours = env.fromSource(source, times, "events").keyBy(e -> e.f0, Types.STRING).window(TumblingEventTimeWindows.of(SIZE));
    if (x[4].equals("event")) hours = hours.trigger(CountTrigger.of(1));
    hours.aggregate(new Count(), new Start(), Types.LONG, Types.LONG, COUNT).name("counts")
     .sinkTo(KafkaSink.<Tuple3<String, Long, Long>>builder().setBootstrapServers(x[0]).setDeliveryGuarantee(DeliveryGuarantee.AT_LEAST_ONCE)
         .setRecordSerializer(new Ser(x[3] + View.OUT)).setProperty("linger.ms", "1").setProperty("batch.size", "131072").setProperty("buffer.memory", "67108864").build());
    System.out.println("STARTED");
    env.execute("counts");
  }
}
