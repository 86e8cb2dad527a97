/** The state before the change, but its count is a double. */
public class Device {
  public double events; public double last = Double.NaN, sum;
  void add(double t) { events++; last = t; sum += t; }
  String json() { return "{\"events\":" + events + ",\"t_last\":" + last + ",\"t_mean\":" + sum / events + "}"; }
}
